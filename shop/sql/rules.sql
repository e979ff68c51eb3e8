-- A person of a merchant is no staff: the pages of staff show all merchants.
CREATE OR REPLACE FUNCTION shop_check_no_staff() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Locked, because the person may become staff in this moment.
    PERFORM FROM public.auth_user WHERE id = NEW.user_id FOR SHARE;
    IF EXISTS (SELECT FROM public.auth_user WHERE id = NEW.user_id AND (is_staff OR is_superuser)) THEN
        RAISE EXCEPTION 'staff are no people of a merchant' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER shop_check_no_staff BEFORE INSERT ON shop_membership
    FOR EACH ROW EXECUTE FUNCTION shop_check_no_staff();

CREATE OR REPLACE FUNCTION shop_check_stays_outside() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM public.shop_membership WHERE user_id = NEW.id AND ended_at IS NULL) THEN
        RAISE EXCEPTION 'people of a merchant are no staff' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER shop_check_stays_outside BEFORE UPDATE ON auth_user
    FOR EACH ROW WHEN ((NEW.is_staff OR NEW.is_superuser) AND NOT (OLD.is_staff OR OLD.is_superuser))
    EXECUTE FUNCTION shop_check_stays_outside();
